/** `memo` without preact/compat: draws again only when a property changed. */
import { Component, type ComponentChildren, h } from "preact";

export function memo<P extends object>(draw: (props: P) => ComponentChildren) {
  class Memo extends Component<P> {
    shouldComponentUpdate(next: Readonly<P>): boolean {
      const before = this.props as Record<string, unknown>;
      const after = next as Record<string, unknown>;
      const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
      return [...keys].some((key) => before[key] !== after[key]);
    }
    render(props: P) {
      return h(draw as never, props as never);
    }
  }
  return Memo as unknown as (props: P) => ComponentChildren;
}
