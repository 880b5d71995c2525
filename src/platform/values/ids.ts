import { randomBytes, randomFillSync, randomUUID } from 'node:crypto'

/** Ids and random secrets as a dependency. Only this file, hash-seed.ts and secrets.ts draw random numbers. */
export interface Ids {
  /** Returns a UUIDv7 whose first 48 bits are `nowMs`. It sorts by time and is unique across processes. */
  uuidv7(nowMs: number): string
  /** Returns `req_` and 24 hex characters. */
  requestId(): string
  /** Returns `prefix` and `bytes` random bytes as base64url. */
  secret(prefix: string, bytes: number): string
  /** Returns a number in [0, 1) for jitter and distribution, never for secrets. */
  random(): number
}

// Random bytes are drawn in blocks, which avoids one system call for each id on the hot path.
const pool = Buffer.alloc(8192)
let used = pool.length

/** Returns `count` random bytes as hex. */
function takeHex(count: number): string {
  if (used + count > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += count
  return pool.toString('hex', used - count, used)
}

/** Random ids from the machine's generator. */
export const systemIds: Ids = {
  uuidv7(nowMs) {
    const time = Math.trunc(nowMs).toString(16).padStart(12, '0')
    const tail = takeHex(10)
    const variant = (8 + (Number.parseInt(tail[4] ?? '0', 16) & 3)).toString(16)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${tail.slice(1, 4)}-${variant}${tail.slice(5, 8)}-${tail.slice(8, 20)}`
  },
  requestId: () => `req_${takeHex(12)}`,
  secret: (prefix, bytes) => prefix + randomBytes(bytes).toString('base64url'),
  random: () => Math.random(),
}

/** Returns a random UUID for names of files and processes. */
export function bootUuid(): string {
  return randomUUID()
}
