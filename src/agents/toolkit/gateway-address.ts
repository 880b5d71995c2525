/** The address of a gateway as people write it, without the slash at the end and without the /v1 that OpenAI clients want behind it. Throws TypeError for what is no http address. */
export function gatewayAddress(baseUrl: string): string {
  const address = baseUrl.trim().replace(/\/+$/, '')
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw new TypeError(`baseUrl must be the http(s) address of the gateway, such as https://gateway.example.com, not "${baseUrl}".`)
  return address.replace(/\/v1$/, '')
}

/** Whether a request goes to the gateway of that address, to the letter of scheme, host and port. */
export function isAtGateway(baseUrl: string, target: string | URL | Request): boolean {
  const url = String(typeof target === 'object' && 'url' in target ? target.url : target)
  return URL.canParse(url) && new URL(url).origin === new URL(baseUrl).origin
}
