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

/** Takes random bytes from the pool and returns the offset of the first. */
function take(count: number): number {
  if (used + count > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += count
  return used - count
}

/** Returns `count` random bytes as hex. */
function takeHex(count: number): string {
  const from = take(count)
  return pool.toString('hex', from, from + count)
}

/** The text of the UUID that is being made. Each call makes one, and joining pieces of text would take four times as long. */
const uuid = Buffer.from('00000000-0000-7000-8000-000000000000')
const hexDigits = Buffer.from('0123456789abcdef')
/** The places of the random digits. The digit at `variantPlace` has two random bits. */
const randomPlaces = [15, 16, 17, 20, 21, 22, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35] as const
const variantPlace = 19
const uuidRandomBytes = randomPlaces.length / 2 + 1
/** Six hex digits. */
const sixDigits = 2 ** 24

/** Writes a number of 24 bits as six digits, beginning with the digit at `place`. The dash after the first eight digits is left out. */
function writeDigits(value: number, place: number): void {
  for (let index = 0; index < 6; index++) {
    const at = place + index
    uuid[at < 8 ? at : at + 1] = hexDigits[(value >>> (20 - 4 * index)) & 15] as number
  }
}

/** Random ids from the machine's generator. */
export const systemIds: Ids = {
  uuidv7(nowMs) {
    writeDigits(Math.floor(nowMs / sixDigits), 0)
    writeDigits(Math.floor(nowMs % sixDigits), 6)
    const from = take(uuidRandomBytes)
    for (let index = 0; index < randomPlaces.length; index++) {
      const byte = pool[from + (index >> 1)] as number
      uuid[randomPlaces[index] as number] = hexDigits[index % 2 === 0 ? byte >> 4 : byte & 15] as number
    }
    uuid[variantPlace] = hexDigits[8 + ((pool[from + uuidRandomBytes - 1] as number) & 3)] as number
    return uuid.toString('latin1')
  },
  requestId: () => `req_${takeHex(12)}`,
  secret: (prefix, bytes) => prefix + randomBytes(bytes).toString('base64url'),
  random: () => Math.random(),
}

/** Returns a random UUID for names of files and processes. */
export function bootUuid(): string {
  return randomUUID()
}
