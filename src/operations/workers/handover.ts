/**
 * The port that workers share. This process accepts connections and hands each one to a worker. The worker with the fewest unconfirmed connections
 * comes first, so that a briefly busy worker delays nobody. Workers with equal numbers take turns. A connection stays open in this process until its
 * worker has confirmed it. If the worker dies before that, another worker gets the connection. Decision 0480 says why node:cluster is not used.
 */
import type { ChildProcess } from 'node:child_process'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { ToWorker } from './messages.ts'

/** Maximum number of connections that wait for a worker or for a confirmation. Further connections are closed. */
const waitingMax = 4096
/** Maximum number of connections that the kernel holds before this process accepts them. The kernel may lower this number. */
const listenBacklog = 4096

interface Given {
  readonly socket: Socket
  readonly worker: ChildProcess
}

export class Handover {
  readonly #server: Server
  /** The workers that receive connections, each with its number of unconfirmed connections. The first worker is the next in turn. */
  readonly #serving = new Map<ChildProcess, number>()
  readonly #given = new Map<number, Given>()
  readonly #waiting: Socket[] = []
  #ids = 0

  constructor() {
    // Node's HTTP server sets the same options. This process reads nothing from a connection.
    this.#server = createServer({ pauseOnConnect: true, noDelay: true, allowHalfOpen: true }, socket => this.#accept(socket))
  }

  /** Listens and resolves to the port. Rejects when the port is taken. */
  listen({ host, port }: { readonly host: string; readonly port: number }): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port, backlog: listenBacklog }, () => resolve((this.#server.address() as AddressInfo).port))
    })
  }

  /** Adds a worker, which then receives connections. */
  add(worker: ChildProcess): void {
    this.#serving.set(worker, 0)
    for (const socket of this.#waiting.splice(0)) this.#give(socket)
  }

  /** Removes a worker, which then receives no more connections. If the worker is dead, other workers get the connections that it has not confirmed. */
  remove(worker: ChildProcess): void {
    this.#serving.delete(worker)
    if (worker.connected) return
    for (const [id, given] of this.#given) if (given.worker === worker) this.#giveAgain(id)
  }

  /** Handles a worker's confirmation of the connection with this id. */
  taken(id: number): void {
    const given = this.#given.get(id)
    if (given === undefined) return
    this.#given.delete(id)
    const untaken = this.#serving.get(given.worker)
    if (untaken !== undefined) this.#serving.set(given.worker, untaken - 1)
    // The worker has its own handle of the socket, so this closes only the handle of this process.
    given.socket.destroy()
  }

  /** Stops accepting connections, and closes those that wait for a worker. */
  close(): void {
    this.#server.close()
    for (const socket of this.#waiting.splice(0)) socket.destroy()
  }

  #accept(socket: Socket): void {
    // This process ignores errors of the socket. The worker notices when the client has disconnected.
    socket.on('error', () => {})
    this.#give(socket)
  }

  #give(socket: Socket): void {
    if (this.#given.size + this.#waiting.length >= waitingMax) {
      socket.destroy()
      return
    }
    const worker = this.#next()
    if (worker === null) {
      this.#waiting.push(socket)
      return
    }
    const id = ++this.#ids
    this.#given.set(id, { socket, worker })
    const message: ToWorker = { kind: 'connection', id }
    worker.send(message, socket, { keepOpen: true }, error => {
      if (error !== null) this.#giveAgain(id)
    })
  }

  #giveAgain(id: number): void {
    const given = this.#given.get(id)
    if (given === undefined) return
    this.#given.delete(id)
    this.#serving.delete(given.worker)
    this.#give(given.socket)
  }

  /** Returns the worker with the fewest unconfirmed connections, and moves it to the end of the order. Returns null when there is no worker. */
  #next(): ChildProcess | null {
    let next: ChildProcess | null = null
    let least = Number.POSITIVE_INFINITY
    for (const [worker, untaken] of this.#serving) {
      if (untaken >= least) continue
      next = worker
      least = untaken
    }
    if (next === null) return null
    this.#serving.delete(next)
    this.#serving.set(next, least + 1)
    return next
  }
}
