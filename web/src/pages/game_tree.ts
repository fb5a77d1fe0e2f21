/** A game with its variations as nodes: 0 to its length are the main line, others lie beside it. */
import type { KeptGame, MoveText, Position, VariationNode } from "../api";

export class GameTree {
  private readonly beside: Map<number, VariationNode>;

  constructor(readonly game: KeptGame) {
    this.beside = new Map(game.variations.map((one) => [one.node, one]));
  }

  get last(): number {
    return this.game.moves.length;
  }

  isMain(node: number): boolean {
    return node <= this.last;
  }

  has(node: number): boolean {
    return (node >= 0 && this.isMain(node)) || this.beside.has(node);
  }

  position(node: number): Position {
    return this.beside.get(node)?.position ?? this.game.positions[node]!;
  }

  /** The move that leads to a node. */
  move(node: number): MoveText | null {
    return this.beside.get(node)?.move ?? this.game.moves[node - 1] ?? null;
  }

  parent(node: number): number {
    return this.beside.get(node)?.parent ?? node - 1;
  }

  children(node: number): number[] {
    const next = this.isMain(node) && node < this.last ? [node + 1] : [];
    return [...next, ...this.game.variations.filter(({ parent }) => parent === node).map((one) => one.node)];
  }

  comment(node: number): string {
    return this.beside.get(node)?.comment ?? this.game.comments[String(node)] ?? "";
  }

  /** All nodes from the start through this one to an end. */
  line(node: number): number[] {
    const nodes = [];
    for (let at = node; at >= 0; at = this.parent(at)) nodes.unshift(at);
    for (let next = this.children(node)[0]; next !== undefined; next = this.children(next)[0]) nodes.push(next);
    return nodes;
  }

  /** How many moves lead to a node. */
  ply(node: number): number {
    return this.line(node).indexOf(node);
  }

  /** The moves from the start to a node. */
  movesTo(node: number): string[] {
    return this.line(node)
      .slice(1, this.ply(node) + 1)
      .map((one) => this.move(one)!.usi);
  }

  /** Lines beside the main line: where each begins, and its nodes up to its end. */
  lines(): number[][] {
    const begins = this.game.variations.filter(({ node, parent }) => this.children(parent)[0] !== node);
    return begins.map(({ node }) => this.line(node).slice(this.ply(node)));
  }
}
