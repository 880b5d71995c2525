import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server on 127.0.0.1 that waits for the browser to bring a key. */
export interface KeyReceiver {
  readonly port: number
  /** Resolves with the key of the first request that carries the right state. */
  readonly key: Promise<string>
  close(): Promise<void>
}

const host = '127.0.0.1'
const keyShape = /^[!-~]{10,200}$/

const page = (title: string, text: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head><body style="font:16px/1.5 system-ui,sans-serif;max-width:30rem;margin:15vh auto;padding:0 1.5rem"><h1>${title}</h1><p>${text}</p><script>history.replaceState(null,'','/done')</script></body></html>\n`
const done = page('Signed in', 'The command line has its key. You can close this window.')
const notWaited = page('That did not work', 'The command line did not ask for this. Run <code>brigade login</code> again and open the address that it prints.')

/** Listens on a free port. Requests with another state are refused and change nothing. */
export async function receiveKey(state: string): Promise<KeyReceiver> {
  let bring: (key: string) => void = () => {}
  const key = new Promise<string>(resolve => {
    bring = resolve
  })
  const server: Server = createServer((request, response) => {
    const brought = keyIn(request, state)
    answer(response, brought === null ? 400 : 200, brought === null ? notWaited : done)
    // The page goes out first, because the server is closed as soon as the key is here.
    if (brought !== null) response.once('close', () => bring(brought))
  })
  await new Promise<void>((listening, failed) => {
    server.once('error', failed)
    server.listen(0, host, listening)
  })
  return {
    port: (server.address() as AddressInfo).port,
    key,
    close() {
      server.closeAllConnections()
      return new Promise(closed => server.close(() => closed()))
    },
  }
}

/** The key, when the request is the hand-over that is waited for. */
function keyIn(request: IncomingMessage, state: string): string | null {
  if (request.method !== 'GET' || !URL.canParse(request.url ?? '', `http://${host}`)) return null
  const { pathname, searchParams } = new URL(request.url ?? '', `http://${host}`)
  const key = searchParams.get('key')
  if (pathname !== '/callback' || searchParams.get('state') !== state || key === null || !keyShape.test(key)) return null
  return key
}

function answer(response: ServerResponse, status: number, html: string): void {
  const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', connection: 'close' }
  response.writeHead(status, headers).end(html)
}
