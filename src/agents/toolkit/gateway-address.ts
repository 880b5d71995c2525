/**
 * Returns the address of a gateway without the slash at the end and without the /v1 that OpenAI clients append. Throws TypeError for a text that is
 * not one HTTP address.
 */
export function gatewayAddress(baseUrl: string): string {
  const address = String(baseUrl).trim().replace(/\/+$/, '')
  const url = URL.canParse(address) ? new URL(address) : null
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new TypeError('baseUrl must be the http(s) address of the gateway, such as https://gateway.example.com.')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError('baseUrl is the address alone: no user, password, query or fragment. The credential has an option of its own.')
  return url.pathname.endsWith('/v1') ? address.slice(0, -'/v1'.length) : address
}

/**
 * Returns whether a request goes to the gateway of that address. It must have the same scheme, host and port, and be below the path of the address
 * when there is one.
 */
export function isAtGateway(baseUrl: string, target: string | URL | Request): boolean {
  const text = String(typeof target === 'object' && 'url' in target ? target.url : target)
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  const gateway = new URL(baseUrl)
  return url.origin === gateway.origin && `${url.pathname}/`.startsWith(gateway.pathname.replace(/\/*$/, '/'))
}
