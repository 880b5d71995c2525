import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * What happens to bytes that a client sends. With 'pass' they are passed on. With 'cut' the connection breaks before they arrive. With 'deafen' they
 * arrive, but the connection breaks before the client gets the answer.
 */
export type Passage = 'pass' | 'cut' | 'deafen'

/** A TCP proxy between a gateway and its database, for tests without a reachable database. */
export interface TcpProxy {
  readonly port: number
  /** Calls `fn` for everything that clients send from now on, also on open connections. Null passes everything on. */
  watch(fn: ((bytes: Buffer) => Passage | Promise<Passage>) | null): void
  /** Breaks every connection and refuses new ones. */
  cut(): Promise<void>
  /** Keeps all connections open but passes nothing on. New connections are accepted and get no answer. */
  freeze(): void
  /** Makes the database reachable again. Frozen connections are closed, and new ones reach the database. */
  restore(): Promise<void>
  close(): Promise<void>
}

/** Starts a proxy to `target` on a loopback port. */
export async function startTcpProxy(target: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>()
  let isFrozen = false
  let watcher: ((bytes: Buffer) => Passage | Promise<Passage>) | null = null
  const resume = (socket: Socket): void => {
    if (!isFrozen) socket.resume()
  }
  /** Passes bytes on as fast as the other side accepts them. */
  const forward = (from: Socket, to: Socket, bytes: Buffer): void => {
    if (to.write(bytes)) return
    from.pause()
    to.once('drain', () => resume(from))
  }
  const onConnection = (client: Socket): void => {
    const upstream = connect(target.port, target.host)
    const pair = [client, upstream] as const
    pairs.add(pair)
    for (const socket of pair) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        pairs.delete(pair)
        client.destroy()
        upstream.destroy()
      })
    }
    if (isFrozen) return
    const breakPair = (): void => {
      client.resetAndDestroy()
      upstream.destroy()
    }
    let isDeaf = false
    client.on('data', (bytes: Buffer) => {
      const verdict = watcher?.(bytes) ?? 'pass'
      const go = (passage: Passage): void => {
        isDeaf ||= passage === 'deafen'
        if (passage === 'cut') breakPair()
        else forward(client, upstream, bytes)
      }
      if (verdict instanceof Promise) {
        client.pause()
        void verdict.then(passage => {
          resume(client)
          go(passage)
        })
      } else go(verdict)
    })
    upstream.on('data', (bytes: Buffer) => (isDeaf ? breakPair() : forward(upstream, client, bytes)))
    client.on('end', () => upstream.end())
    upstream.on('end', () => client.end())
  }
  const server = createServer(onConnection)
  const listen = async (port: number): Promise<void> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  const breakAll = (): void => {
    for (const [client, upstream] of [...pairs]) {
      client.resetAndDestroy()
      upstream.destroy()
    }
  }
  await listen(0)
  const { port } = server.address() as AddressInfo
  const cut = async (): Promise<void> => {
    const closed = server.listening ? once(server, 'close') : null
    server.close()
    breakAll()
    await closed
  }
  return {
    port,
    watch(fn) {
      watcher = fn
    },
    cut,
    freeze() {
      isFrozen = true
      for (const [client, upstream] of pairs) {
        client.pause()
        upstream.pause()
      }
    },
    async restore() {
      isFrozen = false
      breakAll()
      if (!server.listening) await listen(port)
    },
    close: cut,
  }
}
