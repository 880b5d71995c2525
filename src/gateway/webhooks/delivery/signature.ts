/** What a receiver checks a delivery by: its signature and its id on the wire. */
import { createHmac } from 'node:crypto'

/** `t=<unix>,v1=<hex>`: HMAC-SHA256 of `<t>.<body>`, keyed by the secret as it was shown. */
export function signatureOf(secret: string, timestampS: number, body: string): string {
  const digest = createHmac('sha256', secret).update(`${timestampS}.${body}`).digest('hex')
  return `t=${timestampS},v1=${digest}`
}

/** The id of a delivery on the wire and in JSON: `dlv_` and the hex characters of its UUID. */
export function deliveryName(id: string): string {
  return `dlv_${id.replaceAll('-', '')}`
}

/** The UUID of a delivery's name, or null for an invalid name. */
export function deliveryIdOf(name: string): string | null {
  const hex = /^dlv_([0-9a-f]{32})$/.exec(name)?.[1]
  return hex === undefined ? null : hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
