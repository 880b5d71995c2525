/** The fields of day heads and of the rows below them. */
import { z } from 'zod'

/** The bounds of a page of heads and of a page of rows. */
export const headsPageMax = 100
export const rowsPageMax = 1_000

const sha256 = z.string().regex(/^[0-9a-f]{64}$/)

/** What a head signs. */
const headPayload = z.strictObject({
  schema: z.literal('brigade.tool-audit-head.v1'),
  issuer: z.string().describe('Base URL of the gateway that signed.'),
  org_id: z.int(),
  day: z.string().describe('The IST day on which the rows were written.'),
  calls: z.strictObject({
    count: z.int(),
    root: sha256.describe('Merkle root (RFC 6962) over the calls of tools.'),
    first_day: z.string().nullable().describe('The first IST day of a call below this head. Null without calls.'),
  }),
  acts: z.strictObject({ count: z.int(), root: sha256.describe('Merkle root over approvals, blocks and changes of tools.') }),
  previous: sha256.nullable().describe('SHA-256 of the payload of the head before this one. Null for the first one.'),
  made_at: z.string(),
})
export type HeadPayload = z.output<typeof headPayload>

/** A head with its signature over the payload in the form of RFC 8785. */
export const auditHead = z.strictObject({
  payload: headPayload,
  ed25519: z.strictObject({ alg: z.literal('EdDSA'), key_id: z.string(), signature: z.string() }),
})
export type AuditHead = z.output<typeof auditHead>

/** A row below a head, with the members that its leaf covers. */
export const auditRow = z.looseObject({ kind: z.enum(['call', 'act']), id: z.string() })
export type AuditRow = z.output<typeof auditRow>
