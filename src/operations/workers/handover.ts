/**
 * The port that workers share. This process accepts the connections and gives them to the workers in turn. The worker with the fewest
 * connections that it has not confirmed comes first, so that a briefly busy worker delays nobody. A connection stays open here until its
 * worker has confirmed it. If the worker dies before, another one gets the connection. Decision 0480 says why node:cluster is not used.
 */
import type { ChildProcess } from 'node:child_process'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { ToWorker } from './messages.ts'

/** Maximum number of connections that wait for a worker or for its confirmation. Further ones are closed. */
const waitingMax = 4096
/** Maximum number of connections that the kernel may hold before they are accepted. The kernel may lower this number. */
const listenBacklog = 4096

interface Given {
  readonly socket: Socket
  readonly worker: ChildProcess
}

export class Handover {
  readonly #server: Server
  /** Workers that receive connections, each with its number of unconfirmed connections. The first entry is the next in turn. */
  readonly #serving = new Map<ChildProcess, number>()
  readonly #given = new Map<number, Given>()
  readonly #waiting: Socket[] = []
  #ids = 0

  constructor() {
    // The same options as those of Node's HTTP server. Nothing is read here.
    this.#server = createServer({ pauseOnConnect: true, noDelay: true, allowHalfOpen: true }, socket => this.#accept(socket))
  }

  /** Listens and resolves to the port. Rejects when the port is taken. */
  listen({ host, port }: { readonly host: string; readonly port: number }): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port, backlog: listenBacklog }, () => resolve((this.#server.address() as AddressInfo).port))
    })
  }

  /** From now on the worker receives connections. */
  add(worker: ChildProcess): void {
    this.#serving.set(worker, 0)
    for (const socket of this.#waiting.splice(0)) this.#give(socket)
  }

  /** The worker receives no more connections. If it is dead, other workers get the connections that it has not confirmed. */
  remove(worker: ChildProcess): void {
    this.#serving.delete(worker)
    if (worker.connected) return
    for (const [id, given] of this.#given) if (given.worker === worker) this.#giveAgain(id)
  }

  /** A worker has confirmed the connection. */
  taken(id: number): void {
    const given = this.#given.get(id)
    if (given === undefined) return
    this.#given.delete(id)
    const untaken = this.#serving.get(given.worker)
    if (untaken !== undefined) this.#serving.set(given.worker, untaken - 1)
    // The worker has its own handle, so this closes only the handle of this process.
    given.socket.destroy()
  }

  /** Accepts no more connections, and closes those that wait for a worker. */
  close(): void {
    this.#server.close()
    for (const socket of this.#waiting.splice(0)) socket.destroy()
  }

  #accept(socket: Socket): void {
    // The worker notices when the client has disconnected.
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

  /** Returns the worker with the fewest unconfirmed connections, and moves it to the end of the order. Null when there is no worker. */
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
