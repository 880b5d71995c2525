/**
 * Returns the address of a gateway, without the trailing slash and without the /v1 that OpenAI clients append. Throws TypeError unless the text is an
 * HTTP address.
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
 * Returns whether a request goes to the gateway at that address. Scheme, host and port must be the same. When the address has a path, the request
 * must be below that path.
 */
export function isAtGateway(baseUrl: string, target: string | URL | Request): boolean {
  const text = String(typeof target === 'object' && 'url' in target ? target.url : target)
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  const gateway = new URL(baseUrl)
  return url.origin === gateway.origin && `${url.pathname}/`.startsWith(gateway.pathname.replace(/\/*$/, '/'))
}
