/** The sound of a piece put down on a wooden board, for those who turned it on. */
import { settings } from "./store";

const SECONDS = 0.09;
let context: AudioContext | null = null;

export function clack(): void {
  if (settings.value.sound === "off") return;
  context ??= new AudioContext();
  const length = Math.round(context.sampleRate * SECONDS);
  const buffer = context.createBuffer(1, length, context.sampleRate);
  const samples = buffer.getChannelData(0);
  for (let i = 0; i < length; i++) {
    const time = i / context.sampleRate;
    const knock = Math.sin(2 * Math.PI * 950 * time) * Math.exp(-time * 90);
    samples[i] = 0.5 * knock + 0.4 * (2 * Math.random() - 1) * Math.exp(-time * 250);
  }
  const source = new AudioBufferSourceNode(context, { buffer });
  source.connect(context.destination);
  source.start();
}
