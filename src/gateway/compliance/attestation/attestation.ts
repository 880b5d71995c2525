/**
 * The signed statement of where an organisation's calls were served. It names models, providers, residencies, times and ids, and has no content of
 * calls. Decision 0348 says why.
 */

import canonicalize from 'canonicalize'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import { percentages } from '../percentages.ts'
import { type AttestedRow, readAttested } from '../queries.ts'
import { iso, periodOf, type Window, windowOf } from '../window.ts'
import type { AttestationKeys } from './attestation-keys.ts'
import type { Attestation, AttestationPayload } from './attestation-shape.ts'

/** The path of the public keys. */
export const attestationKeysPath = '/.well-known/attestation-keys.json'

const incomplete =
  'The sums of usage and the rows of single calls disagree, so nothing was signed. The operator runs brigade admin usage rebuild; then ask again.'

export interface AttestationsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly keys: AttestationKeys
  /** The setting ATTESTATION_EVIDENCE_MAX. */
  readonly evidenceMax: number
  /** Writes the charges of this process to the database. */
  readonly journal: Flushable
}

/** Creates attestations. */
export class Attestations {
  readonly #deps: AttestationsDeps

  constructor(deps: AttestationsDeps) {
    this.#deps = deps
  }

  get keys(): AttestationKeys {
    return this.#deps.keys
  }

  /**
   * Creates an attestation of the window. It contains every call that this process has settled so far. A call of another process is contained after
   * at most one flush. Throws `bad_request` for an invalid window. Throws `internal_error` when the attestation cannot be signed or its sums are
   * incomplete.
   */
  async make(orgId: number, windowText: string, baseUrl: string): Promise<Attestation> {
    const { db, clock, keys, evidenceMax, journal } = this.#deps
    const window = windowOf(windowText, clock.nowMs())
    await journal.flushNow()
    const rows = await db.many(readAttested, orgId, window.from, window.to, evidenceMax)
    const payload = payloadOf(rows, { orgId, window, baseUrl, madeAtMs: clock.nowMs(), evidenceMax })
    const { hmac, ed25519 } = await keys.sign(canonicalBytes(payload))
    return {
      payload,
      alg: 'HMAC-SHA256',
      key_id: hmac.keyId,
      signature: hmac.signature,
      ed25519: { alg: 'EdDSA', key_id: ed25519.keyId, signature: ed25519.signature, jwks_url: baseUrl + attestationKeysPath },
    }
  }
}

/** Returns the bytes that are signed: the payload in its canonical form (RFC 8785). Throws for values that JSON cannot express. */
export function canonicalBytes(payload: unknown): Buffer {
  const text = canonicalize(payload)
  if (text === undefined) throw new TypeError('there is nothing to sign')
  return Buffer.from(text)
}

interface Facts {
  readonly orgId: number
  readonly window: Window
  readonly baseUrl: string
  readonly madeAtMs: number
  readonly evidenceMax: number
}

function payloadOf(rows: readonly AttestedRow[], { orgId, window, baseUrl, madeAtMs, evidenceMax }: Facts): AttestationPayload {
  const sums = rows[0]
  const [total = 0, india = 0, declared = 0, unknown = 0] = [sums?.total, sums?.india, sums?.declared, sums?.unknown].map(count => Number(count ?? 0n))
  const items = rows.flatMap(row => (row.model === null ? [] : [{ ...row, model: row.model }])).map(itemOf)
  const [counts = 0, indiaCounts = 0] = [sums?.counts, sums?.indiaCounts].map(count => Number(count ?? 0n))
  const isCapped = items.length < total
  const listedIndia = items.filter(item => item.residency === 'india').length
  // There were more calls than items, but the number of items is below the limit. So rows of the window were deleted by age, or they are missing.
  const isThinned = isCapped && items.length < evidenceMax
  if (listedIndia > india || items.length - listedIndia > total - india || (isThinned && sums?.isThinned !== true))
    throw fail('internal_error', { message: incomplete })
  const [indiaPct = 0, globalPct = 0] = percentages([india, total - india])
  return {
    schema: 'brigade.residency-attestation.v1',
    issuer: baseUrl,
    org_id: orgId,
    window: window.text,
    generated_at: iso(madeAtMs),
    period: periodOf(window, madeAtMs),
    summary: {
      total,
      india_requests: india,
      india_pct: indiaPct,
      global_requests: total - india,
      global_pct: globalPct,
      declared_requests: declared,
      unknown_requests: unknown,
    },
    token_counts: { total: counts, india_requests: indiaCounts, global_requests: counts - indiaCounts },
    evidence: {
      count: items.length,
      capped: isCapped,
      capped_by: isThinned ? 'retention' : isCapped ? 'limit' : null,
      items,
    },
  }
}

function itemOf({ model, provider, residency, at, requestId }: AttestedRow & { model: string }): AttestationPayload['evidence']['items'][number] {
  return { model, provider, residency: residencyOf(residency), timestamp: at.toISOString(), correlation_id: requestId }
}

/** Returns the residency in the form that documents use. Every unknown text becomes `unknown`. */
export const residencyOf = (text: string): AttestationPayload['evidence']['items'][number]['residency'] =>
  text === 'india' || text === 'declared' || text === 'global' ? text : 'unknown'
