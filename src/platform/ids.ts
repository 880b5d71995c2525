import { randomBytes, randomFillSync, randomUUID } from 'node:crypto'

/** Ids and random secrets as a dependency: with secrets.ts the only place that draws random numbers. */
export interface Ids {
  /** A UUIDv7 whose first 48 bits are `nowMs`: sorts by time, unique over processes. */
  uuidv7(nowMs: number): string
  /** `req_` + 24 hex characters. */
  requestId(): string
  /** `prefix` + `bytes` random bytes as base64url. */
  secret(prefix: string, bytes: number): string
  /** A number in [0, 1) for jitter and spreading, never for secrets. */
  random(): number
}

// A pool of random bytes spares one system call per id on the hot path.
const pool = new Uint8Array(8192)
let used = pool.length

function take(count: number): Uint8Array {
  if (used + count > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const bytes = pool.subarray(used, used + count)
  used += count
  return bytes
}

const hex = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, '0'))
const hexOf = (bytes: Uint8Array): string => {
  let text = ''
  for (const byte of bytes) text += hex[byte]
  return text
}

/** Random ids of the machine's own generator. */
export const systemIds: Ids = {
  uuidv7(nowMs) {
    const time = Math.trunc(nowMs).toString(16).padStart(12, '0')
    const tail = hexOf(take(10))
    const variant = (8 + (Number.parseInt(tail[4] ?? '0', 16) & 3)).toString(16)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${tail.slice(1, 4)}-${variant}${tail.slice(5, 8)}-${tail.slice(8, 20)}`
  },
  requestId: () => `req_${hexOf(take(12))}`,
  secret: (prefix, bytes) => prefix + randomBytes(bytes).toString('base64url'),
  random: () => Math.random(),
}

/** A random UUID, for names of files and processes. */
export function bootUuid(): string {
  return randomUUID()
}
