/** The signed statement of where an organisation's calls were served. Without content: models, providers, residencies, times and ids. */
import canonicalize from 'canonicalize'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { fail } from '../../platform/errors.ts'
import type { AttestationKeys } from './attestation-keys.ts'
import type { Attestation, AttestationPayload } from './attestation-shape.ts'
import { percentages } from './percentages.ts'
import { type AttestedRow, readAttested } from './queries.ts'
import { iso, periodOf, type Window, windowOf } from './window.ts'

/** Where the public keys are. */
export const attestationKeysPath = '/.well-known/attestation-keys.json'

const incomplete = 'The sums of usage lack calls that stand in the books, so nothing was signed. The operator runs brigade admin usage rebuild; then ask again.'

export interface AttestationsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly keys: AttestationKeys
  /** ATTESTATION_EVIDENCE_MAX. */
  readonly evidenceMax: number
  /** Brings what this process has settled into the database. */
  readonly flushNow: () => Promise<void>
}

/** Makes attestations. */
export class Attestations {
  readonly #deps: AttestationsDeps

  constructor(deps: AttestationsDeps) {
    this.#deps = deps
  }

  get keys(): AttestationKeys {
    return this.#deps.keys
  }

  /**
   * A new attestation of the window. What this process settled before the call is in it; other processes are at most a flush behind.
   * Throws `bad_request` for a window that is none, and `internal_error` when it cannot be signed or the sums are not whole.
   */
  async make(orgId: number, windowText: string, baseUrl: string): Promise<Attestation> {
    const { db, clock, keys, evidenceMax, flushNow } = this.#deps
    const window = windowOf(windowText, clock.nowMs())
    await flushNow()
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

/** The bytes that are signed: the payload as RFC 8785 writes it. Throws for what no JSON text can say. */
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
  const [total, india, unknown] = [Number(sums?.total ?? 0n), Number(sums?.india ?? 0n), Number(sums?.unknown ?? 0n)]
  const items = rows.flatMap(row => (row.model === null ? [] : [{ ...row, model: row.model }])).map(itemOf)
  const isCapped = items.length < total
  const listedIndia = items.filter(item => item.residency === 'india').length
  if (listedIndia > india || items.length - listedIndia > total - india) throw fail('internal_error', { message: incomplete })
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
      unknown_requests: unknown,
    },
    evidence: {
      count: items.length,
      capped: isCapped,
      // Fewer than the cap although there were more calls: the rows of the older ones are kept no longer.
      capped_by: isCapped ? (items.length < evidenceMax ? 'retention' : 'limit') : null,
      items,
    },
  }
}

function itemOf({ model, provider, residency, at, requestId }: AttestedRow & { model: string }): AttestationPayload['evidence']['items'][number] {
  const shown = residency === 'india' || residency === 'global' ? residency : 'unknown'
  return { model, provider, residency: shown, timestamp: at.toISOString(), correlation_id: requestId }
}
