/** The fields of an attestation. */
import { z } from 'zod'

/** The period of a document. */
export const period = z.object({
  from: z.string().describe('First IST day.'),
  to: z.string().describe('Last IST day; included.'),
  time_zone: z.literal('Asia/Kolkata'),
  from_at: z.string().describe('The instant at which the first day begins.'),
  until_at: z.string().describe('The instant up to which calls are in it.'),
})

/** Where a call was served. `india` only when the gateway vouches for it. `declared` when only the organisation says so about its own server. */
export const residency = z.enum(['india', 'declared', 'unknown', 'global'])

const payload = z.object({
  schema: z.literal('brigade.residency-attestation.v1'),
  issuer: z.string().describe('Base URL of the gateway that signed.'),
  org_id: z.int(),
  window: z.string(),
  generated_at: z.string(),
  period,
  summary: z
    .object({
      total: z.int(),
      india_requests: z.int(),
      india_pct: z.number(),
      global_requests: z.int().describe('All that are not proven to have stayed in India.'),
      global_pct: z.number(),
      declared_requests: z.int().describe('Part of global_requests: on servers of the organisation, which says itself that they are in India.'),
      unknown_requests: z.int().describe('Part of global_requests: of providers whose place is not known.'),
    })
    .describe('Over the whole window.'),
  token_counts: z
    .object({ total: z.int(), india_requests: z.int(), global_requests: z.int() })
    .describe('Prompts that were sent to a provider to have their tokens counted (POST /v1/messages/count_tokens): no calls, so not in summary and evidence.'),
  evidence: z.object({
    count: z.int().describe('How many items there are.'),
    capped: z.boolean().describe('True: the window has more calls than items.'),
    capped_by: z.enum(['limit', 'retention']).nullable().describe('limit: only the newest are listed; retention: the rows of older calls are kept no longer.'),
    items: z
      .array(
        z.object({
          model: z.string(),
          provider: z.string(),
          residency,
          timestamp: z.string(),
          correlation_id: z.string().describe('x-request-id of the call.'),
        }),
      )
      .describe('The newest first.'),
  }),
})

/** An attestation. Both signatures cover the payload in its canonical form (RFC 8785). */
export const attestation = z.object({
  payload,
  alg: z.literal('HMAC-SHA256'),
  key_id: z.string().describe('Fingerprint of the secret of the HMAC.'),
  signature: z.string().describe('Hex. Only the gateway that signed can check it.'),
  ed25519: z
    .object({ alg: z.literal('EdDSA'), key_id: z.string(), signature: z.string().describe('Base64url.'), jwks_url: z.string() })
    .describe('Anybody can check it with the published key.'),
})

export type Attestation = z.output<typeof attestation>
export type AttestationPayload = Attestation['payload']
