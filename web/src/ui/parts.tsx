/** Small parts that all pages use. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { ApiError, RunRow } from "../api";
import type { Connection } from "../loading";
import { Icon, type IconName } from "./icons";

interface ButtonProps {
  children?: ComponentChildren;
  icon?: IconName;
  /** What an icon without text means. */
  label?: string;
  kind?: "plain" | "main" | "quiet" | "danger";
  disabled?: boolean;
  pressed?: boolean;
  type?: "button" | "submit";
  onClick?: (event: Event) => void;
}

export function Button({ children, icon, label, kind = "plain", pressed, type = "button", ...rest }: ButtonProps) {
  return (
    <button
      type={type}
      class={`button ${kind}${children ? "" : " icon-only"}`}
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      {...rest}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** One of a few choices, side by side. */
export function Choice<T extends string>(props: {
  label: string;
  value: T;
  options: [T, ComponentChildren][];
  onChange: (value: T) => void;
}) {
  return (
    <fieldset class="choice">
      <legend>{props.label}</legend>
      <div class="options">
        {props.options.map(([value, text]) => (
          <label key={value} class={value === props.value ? "chosen" : undefined}>
            <input
              type="radio"
              name={props.label}
              value={value}
              checked={value === props.value}
              onChange={() => props.onChange(value)}
            />
            {text}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

export function StateBadge({ state }: { state: RunRow["state"] }) {
  return <span class={`badge ${state}`}>{state}</span>;
}

export function ConnectionNote({ state }: { state: Connection }) {
  if (state !== "lost") return null;
  return (
    <p class="note warning" role="status">
      The connection to Keisei is lost; trying again. What you see is from before.
    </p>
  );
}

/** What to show while something is fetched, or when it could not be. */
export function Waiting({ error, what, onRetry }: { error: ApiError | null; what: string; onRetry?: () => void }) {
  if (error) {
    return (
      <Empty title={`Could not load ${what}`} tone="error">
        <p>{sentence(error.message)}</p>
        {onRetry && <Button onClick={onRetry}>Try again</Button>}
      </Empty>
    );
  }
  return (
    <div class="skeleton" role="status" aria-label={`Loading ${what}`}>
      <span />
      <span />
      <span />
    </div>
  );
}

export function Empty({ title, tone, children }: { title: string; tone?: "error"; children?: ComponentChildren }) {
  return (
    <div class={`empty${tone ? ` ${tone}` : ""}`} role={tone ? "alert" : undefined}>
      <svg viewBox="-46 -52 92 106" aria-hidden="true">
        <path d="M0-47L27.5-37.5L38.5 46.5H-38.5L-27.5-37.5Z" />
      </svg>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A question or an answer over the page. */
export function Dialog({ title, children, onClose }: { title: string; children: ComponentChildren; onClose: () => void }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === element.current && onClose()}
    >
      <div class="dialog-body">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

export function Tile({ label, value, note }: { label: string; value: ComponentChildren; note?: ComponentChildren }) {
  return (
    <div class="tile">
      <dt>{label}</dt>
      <dd>
        {value}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

export function Progress({ share, label }: { share: number; label: string }) {
  return (
    <div
      class="progress"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(share * 100)}
    >
      <span style={{ width: `${Math.min(100, share * 100)}%` }} />
    </div>
  );
}

export function sentence(text: string): string {
  const whole = text.trim();
  const begun = whole.charAt(0).toUpperCase() + whole.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
