/** Checks day heads and the rows below them. It needs only the heads, the rows and the published keys. */
import { z } from 'zod'
import { canonicalBytes } from '../attestation/attestation.ts'
import { signatureFault } from '../attestation/verify.ts'
import { type AuditHead, type AuditRow, auditHead } from './audit-head-shape.ts'
import { hashOf } from './audit-heads.ts'
import { leafOf } from './audit-rows.ts'
import { MerkleRoot } from './merkle-root.ts'

/** What is wrong with a day. */
export interface HeadFault {
  readonly day: string
  readonly why: string
}

/** Returns the heads in a text: a list, or an object with a list under `heads`. Null when it contains none. */
export function headsIn(value: unknown): AuditHead[] | null {
  const list = z.union([z.array(auditHead), z.looseObject({ heads: z.array(auditHead) }).transform(({ heads }) => heads)])
  return list.safeParse(value).data ?? null
}

/** Returns the faults of a list of heads, the oldest first: a signature of another key, a head that is missing between two, and one of another organisation. */
export function headFaults(heads: readonly AuditHead[], keys: unknown): HeadFault[] {
  const faults: HeadFault[] = []
  for (const [i, { payload, ed25519 }] of heads.entries()) {
    const before = heads[i - 1]?.payload
    const bytes = canonicalBytes(payload)
    const why = signatureFault(bytes, ed25519.key_id, ed25519.signature, keys)
    if (why !== null) faults.push({ day: payload.day, why: `the head: ${why}` })
    if (before === undefined) {
      if (payload.previous !== null) faults.push({ day: payload.day, why: 'the head before this one is missing' })
      continue
    }
    if (before.org_id !== payload.org_id || before.day >= payload.day) faults.push({ day: payload.day, why: 'the head is not of the list before it' })
    else if (payload.previous !== hashOf(canonicalBytes(before)))
      faults.push({ day: payload.day, why: `the head does not follow the head of ${before.day}: a head between them is missing, or one of them was replaced` })
  }
  return faults
}

/** Returns the faults of heads that somebody kept, against those of the gateway now: a head that is gone, and one with another payload. */
export function keptFaults(kept: readonly AuditHead[], now: readonly AuditHead[]): HeadFault[] {
  const byDay = new Map(now.map(head => [head.payload.day, head]))
  return kept.flatMap(({ payload }) => {
    const present = byDay.get(payload.day)
    if (present === undefined) return [{ day: payload.day, why: 'the gateway has no head of this day any more' }]
    const isSame = hashOf(canonicalBytes(present.payload)) === hashOf(canonicalBytes(payload))
    return isSame ? [] : [{ day: payload.day, why: 'the gateway has another head of this day than the one that was kept' }]
  })
}

/** Collects the rows of a day, in the order of the gateway, and compares them with the head of the day. */
export class DayRows {
  readonly #roots = { call: new MerkleRoot(), act: new MerkleRoot() }

  add(row: AuditRow): void {
    this.#roots[row.kind].add(leafOf(row))
  }

  /**
   * Returns what differs. Days of calls before `callsKeptFrom`, and acts before the instant `actsKeptFrom`, may have been deleted by age. Such a day with
   * fewer rows than its head has could not be compared: `isPartial`.
   */
  compare(
    { payload }: AuditHead,
    kept: { readonly callsKeptFrom: string | null; readonly actsKeptFrom: string; readonly dayStart: string },
  ): { readonly faults: readonly HeadFault[]; readonly isPartial: boolean } {
    const { calls, acts, day } = payload
    const faults: HeadFault[] = []
    let isPartial = false
    const isOld = {
      calls: calls.first_day !== null && kept.callsKeptFrom !== null && calls.first_day < kept.callsKeptFrom,
      acts: kept.dayStart < kept.actsKeptFrom,
    }
    for (const [name, signed, found] of [['calls', calls, this.#roots.call] as const, ['acts', acts, this.#roots.act] as const]) {
      if (found.hex() === signed.root) continue
      if (isOld[name] && found.count < signed.count) {
        isPartial = true
        continue
      }
      const why =
        found.count === signed.count
          ? `at least one of the ${signed.count} ${name} was changed`
          : `${signed.count} ${name} are signed, and the gateway has ${found.count}`
      faults.push({ day, why })
    }
    return { faults, isPartial }
  }
}
