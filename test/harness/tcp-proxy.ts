import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * What becomes of bytes that a client sends: they pass; the connection breaks before they arrive ('cut'); or they arrive, and it breaks
 * when the answer to them comes ('deafen'), so that the client never gets it.
 */
export type Passage = 'pass' | 'cut' | 'deafen'

/** A TCP proxy between a gateway and its database, to take the database away. */
export interface TcpProxy {
  readonly port: number
  /** Asks about everything that clients send from now on, on open connections too; null: everything passes. */
  watch(fn: ((bytes: Buffer) => Passage | Promise<Passage>) | null): void
  /** Breaks every connection and refuses new ones. */
  cut(): Promise<void>
  /** Every connection stays open and carries nothing any more; new ones are taken and answered by silence. */
  freeze(): void
  /** The database is back: frozen connections are broken, new ones lead to it. */
  restore(): Promise<void>
  close(): Promise<void>
}

/** Starts one on a loopback port that leads to `target`. */
export async function startTcpProxy(target: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>()
  let isFrozen = false
  let watcher: ((bytes: Buffer) => Passage | Promise<Passage>) | null = null
  const resume = (socket: Socket): void => {
    if (!isFrozen) socket.resume()
  }
  /** Passes bytes on as fast as the other side takes them. */
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
