import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'

/** A TCP proxy between a gateway and PostgreSQL. It can drop notifications, as a connection pooler or a broken LISTEN does, and passes everything else on. */
export interface DeafProxy {
  readonly port: number
  /** Drops the notifications of the database from now on. With `false` it passes them on again. */
  deafen(isDeaf: boolean): void
  /** Number of dropped notifications so far. */
  readonly swallowed: number
  close(): Promise<void>
}

/** The first byte of a NotificationResponse. */
const notificationType = 0x41

/** Starts a proxy to `target` on a loopback port. At first it passes notifications on. */
export async function startDeafProxy(target: { readonly host: string; readonly port: number }): Promise<DeafProxy> {
  const sockets = new Set<Socket>()
  let isDeaf = false
  let swallowed = 0
  const isHeard = (type: number): boolean => {
    if (!isDeaf || type !== notificationType) return true
    swallowed++
    return false
  }
  const server = createServer(client => {
    const upstream = connect(target.port, target.host)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    client.pipe(upstream)
    upstream.pipe(messageFilter(isHeard)).pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    deafen(next) {
      isDeaf = next
    },
    get swallowed() {
      return swallowed
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Passes on those messages of a PostgreSQL server whose type `isWanted` accepts. A message has one byte of type, four of length, and the body. */
function messageFilter(isWanted: (type: number) => boolean): Transform {
  let rest: Buffer = Buffer.alloc(0)
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      for (;;) {
        const length = rest.length < 5 ? Number.POSITIVE_INFINITY : 1 + rest.readUInt32BE(1)
        if (rest.length < length) return done()
        if (isWanted(rest[0] ?? 0)) this.push(rest.subarray(0, length))
        rest = rest.subarray(length)
      }
    },
  })
}
