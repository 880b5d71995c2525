/** Signatures of the payment provider: hex HMAC-SHA256, compared in constant time. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../../platform/secret.ts'

const hexDigest = /^[0-9a-f]{64}$/

/** Whether these bytes were signed with that secret. What is no hex digest never was. */
export function isSigned(bytes: Buffer | string, signature: string, secret: Secret): boolean {
  if (!hexDigest.test(signature)) return false
  return timingSafeEqual(createHmac('sha256', secret.reveal()).update(bytes).digest(), Buffer.from(signature, 'hex'))
}

/** What the checkout signs with the key secret when a payment went well. Ids hold no `|`, so no other pair reads the same. */
export function checkoutText(orderId: string, paymentId: string): string {
  return `${orderId}|${paymentId}`
}
