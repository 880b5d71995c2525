/** Makes, seals and opens the signing secrets of endpoints. A secret is shown once, and is stored only in sealed form. */

import type { Sealer } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'

const secretBytes = 32

/** Returns a new secret: `whsec_` and the base64url of 32 random bytes. */
export function newWebhookSecret(ids: Ids): string {
  return ids.secret('whsec_', secretBytes)
}

/** Returns the name of the row to which a sealed secret belongs. */
export const webhookSecretOwner = (endpointId: number): string => `webhook_endpoint:${endpointId}`

/** Seals a secret for the row of its endpoint. It can be opened only for that endpoint. */
export function sealWebhookSecret(sealer: Sealer, endpointId: number, secret: string): string {
  return sealer.seal(secret, webhookSecretOwner(endpointId))
}

/** Opens a sealed secret. Throws when it was sealed for another endpoint or with an unknown master key. */
export function openWebhookSecret(sealer: Sealer, endpointId: number, sealed: string): string {
  return sealer.open(sealed, webhookSecretOwner(endpointId))
}
