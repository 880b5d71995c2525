/** Signing secrets of endpoints: how they are made, sealed and opened. Shown once, at rest only sealed. */

import type { Sealer } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'

const secretBytes = 32

/** A new secret: `whsec_` and base64url of 32 random bytes. */
export function newWebhookSecret(ids: Ids): string {
  return ids.secret('whsec_', secretBytes)
}

/** Names the row that a sealed secret belongs to. */
export const webhookSecretOwner = (endpointId: number): string => `webhook_endpoint:${endpointId}`

/** The secret as the row of its endpoint keeps it; it opens for that endpoint only. */
export function sealWebhookSecret(sealer: Sealer, endpointId: number, secret: string): string {
  return sealer.seal(secret, webhookSecretOwner(endpointId))
}

/** The secret as signing needs it. Throws when it was sealed for another endpoint or under a master key that is not known. */
export function openWebhookSecret(sealer: Sealer, endpointId: number, sealed: string): string {
  return sealer.open(sealed, webhookSecretOwner(endpointId))
}
