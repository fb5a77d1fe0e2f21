/** A button that copies the address of a page. */
import { useEffect, useState } from "preact/hooks";
import { Button } from "./parts";

export function CopyLink({ address }: { address: string }) {
  const [copied, setCopied] = useState(false);
  const whole = `${location.origin}${location.pathname}${address}`;
  useEffect(() => setCopied(false), [address]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(whole);
      setCopied(true);
    } catch {
      location.hash = address; // no clipboard: the address bar has it then
    }
  };
  return (
    <Button kind="quiet" icon="link" onClick={copy}>
      <span aria-live="polite">{copied ? "Copied" : "Share"}</span>
    </Button>
  );
}
