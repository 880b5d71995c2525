import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy between a gateway and its database, to take the database away. */
export interface TcpProxy {
  readonly port: number
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
    client.pipe(upstream)
    upstream.pipe(client)
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
    cut,
    freeze() {
      isFrozen = true
      for (const [client, upstream] of pairs) {
        for (const socket of [client, upstream]) {
          socket.unpipe()
          socket.pause()
        }
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
