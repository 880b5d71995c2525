import { api, type ReplyOf } from '../../../api/call.ts'
import { istDayStart } from '../../../ui/format/dates.ts'
import { MerkleRoot } from './merkle-root.ts'
import { bytesOf, canonical, hexOf, type PublishedKey, sha256, signatureFault } from './signature.ts'

export type Head = ReplyOf<'listToolAuditHeads'>['heads'][number]

/** What the check says about one day. `head`: its signature was checked and its rows were not read. */
export interface DayResult {
  readonly head: Head
  readonly state: 'good' | 'partial' | 'bad' | 'head'
  readonly rows: number
  readonly faults: readonly string[]
}

export interface VerifyResult {
  /** The newest day first. */
  readonly days: readonly DayResult[]
  readonly rows: number
}

/** Rows are read for at most this many days, the newest ones. Signatures are checked for all. */
export const rowDaysMax = 31
/** Maximum number of pages of heads, with 100 heads each. They are the days of 27 years. */
const headPagesMax = 100

async function allHeads(signal: AbortSignal): Promise<Head[]> {
  const heads: Head[] = []
  let after: string | null = null
  for (let page = 0; page < headPagesMax; page++) {
    const reply: ReplyOf<'listToolAuditHeads'> = await api('listToolAuditHeads', { query: after === null ? {} : { after }, signal })
    heads.push(...reply.heads)
    after = reply.next_after
    if (after === null) break
  }
  return heads
}

/** Returns what is wrong with a head itself: its signature, and whether it follows the head before it. */
async function headFaults(head: Head, before: Head | undefined, keys: readonly PublishedKey[]): Promise<string[]> {
  const faults: string[] = []
  const why = await signatureFault(head.payload, head.ed25519, keys)
  if (why !== null) faults.push(`The head: ${why}`)
  const expected = before === undefined ? null : hexOf(await sha256(bytesOf(canonical(before.payload))))
  if (head.payload.previous !== expected || (before !== undefined && (before.payload.day >= head.payload.day || before.payload.org_id !== head.payload.org_id)))
    faults.push('The head does not follow the one before it: one is missing, or one was replaced.')
  return faults
}

/** Compares the rows of a day with its head. Rows that may have been deleted by age make the comparison partial. */
async function rowsOf({ payload }: Head, signal: AbortSignal): Promise<{ rows: number; faults: string[]; isPartial: boolean }> {
  const roots = { call: new MerkleRoot(), act: new MerkleRoot() }
  let cursor: string | null = null
  let page: ReplyOf<'listToolAuditRows'>
  do {
    page = await api('listToolAuditRows', { query: { day: payload.day, ...(cursor === null ? {} : { cursor }) }, signal })
    for (const row of page.rows) await roots[row.kind].add(canonical(row))
    cursor = page.next_cursor
  } while (cursor !== null)
  const { calls, acts, day } = payload
  const isOld = {
    call: calls.first_day !== null && page.calls_kept_from !== null && calls.first_day < page.calls_kept_from,
    act: istDayStart(day) < page.acts_kept_from,
  }
  const faults: string[] = []
  let isPartial = false
  for (const [kind, signed] of [['call', calls] as const, ['act', acts] as const]) {
    const found = roots[kind]
    if ((await found.hex()) === signed.root) continue
    if (isOld[kind] && found.count < signed.count) isPartial = true
    else if (found.count === signed.count) faults.push(`At least one of ${signed.count} ${kind}s was changed.`)
    else faults.push(`${signed.count} ${kind}s are signed, and the gateway has ${found.count}.`)
  }
  return { rows: roots.call.count + roots.act.count, faults, isPartial }
}

/** Checks all heads, and the rows of the newest days, with the keys that the gateway publishes. `onDay` receives how many days are done. */
export async function verifyHeads(onDay: (days: number) => void, signal: AbortSignal): Promise<VerifyResult> {
  const [{ keys }, heads] = await Promise.all([api('attestationKeys', { signal }), allHeads(signal)])
  const days: DayResult[] = []
  for (const [index, head] of heads.entries()) {
    const faults = await headFaults(head, heads[index - 1], keys)
    const isRead = heads.length - index <= rowDaysMax
    const found = isRead ? await rowsOf(head, signal) : null
    const all = [...faults, ...(found?.faults ?? [])]
    const state = all.length > 0 ? 'bad' : found === null ? 'head' : found.isPartial ? 'partial' : 'good'
    days.push({ head, state, rows: found?.rows ?? 0, faults: all })
    onDay(index + 1)
  }
  return { days: days.toReversed(), rows: days.reduce((sum, { rows }) => sum + rows, 0) }
}
