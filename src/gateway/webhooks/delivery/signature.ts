/** The signature and the public id of a delivery, which a receiver checks. */
import { createHmac } from 'node:crypto'

/** Returns `t=<unix>,v1=<hex>`. The hex is the HMAC-SHA256 of `<t>.<body>`. The key is the secret in the form in which it was shown to the person. */
export function signatureOf(secret: string, timestampS: number, body: string): string {
  const digest = createHmac('sha256', secret).update(`${timestampS}.${body}`).digest('hex')
  return `t=${timestampS},v1=${digest}`
}

/** Returns the public id of a delivery: `dlv_` and the hex digits of its UUID. */
export function deliveryName(id: string): string {
  return `dlv_${id.replaceAll('-', '')}`
}

/** Returns the UUID of a public id, or null when the id is invalid. */
export function deliveryIdOf(name: string): string | null {
  const hex = /^dlv_([0-9a-f]{32})$/.exec(name)?.[1]
  return hex === undefined ? null : hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
