/** AMR: speech in frames of 20 ms. The first byte of a frame gives its size in bytes (RFC 4867, section 5). */
import type { CountedSound } from './bounds.ts'

const frameSeconds = 0.02
/** Size of a frame in bytes, including its first byte, by frame type, as in FFmpeg. */
const narrow = [13, 14, 16, 18, 20, 21, 27, 32, 6, 1, 1, 1, 1, 1, 1, 1] as const
const wide = [18, 24, 33, 37, 41, 47, 51, 59, 61, 6, 1, 1, 1, 1, 1, 1] as const
const forms = [
  ['#!AMR\n', false],
  ['#!AMR-WB\n', true],
] as const

/** Returns the seconds of frames that follow each other. */
export function amrSeconds(bytes: Buffer, isWide: boolean): number {
  const lengths = isWide ? wide : narrow
  let frames = 0
  for (let at = 0; at < bytes.length; frames++) at += lengths[((bytes[at] ?? 0) >> 3) & 15] ?? 1
  return frames * frameSeconds
}

/** Counts the frames of AMR or AMR-WB with one channel. Null for any other file. */
export function countAmr(bytes: Buffer): CountedSound | null {
  const form = forms.find(([magic]) => bytes.toString('latin1', 0, magic.length) === magic)
  if (form === undefined) return null
  const [magic, isWide] = form
  return { seconds: amrSeconds(bytes.subarray(magic.length), isWide), isCompact: true }
}
