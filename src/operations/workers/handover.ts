/**
 * The port that workers share: connections are accepted here and go to the workers in turn, first to those that have taken all that they were given: a worker that
 * is busy for a moment keeps nobody waiting. A connection stays open here until its worker has said that it
 * has it, so that one whose worker dies on the way goes to another. Decision 0480 says why node:cluster does not do.
 */
import type { ChildProcess } from 'node:child_process'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { ToWorker } from './messages.ts'

/** Connections that wait for a worker, or for one to take them; more are closed. */
const waitingMax = 4096
/** Connections that the kernel may hold before they are accepted. It caps the number. */
const listenBacklog = 4096

interface Given {
  readonly socket: Socket
  readonly worker: ChildProcess
}

export class Handover {
  readonly #server: Server
  /** Workers that get connections, the next one first, with how many they have not taken yet. */
  readonly #serving = new Map<ChildProcess, number>()
  readonly #given = new Map<number, Given>()
  readonly #waiting: Socket[] = []
  #ids = 0

  constructor() {
    // As the server of HTTP has it. Nothing is read here.
    this.#server = createServer({ pauseOnConnect: true, noDelay: true, allowHalfOpen: true }, socket => this.#accept(socket))
  }

  /** Resolves to the port. Rejects when it is taken. */
  listen({ host, port }: { readonly host: string; readonly port: number }): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port, backlog: listenBacklog }, () => resolve((this.#server.address() as AddressInfo).port))
    })
  }

  /** From here on the worker gets connections. */
  add(worker: ChildProcess): void {
    this.#serving.set(worker, 0)
    for (const socket of this.#waiting.splice(0)) this.#give(socket)
  }

  /** The worker gets no more connections; what it was given and has not taken goes to another one if it is dead. */
  remove(worker: ChildProcess): void {
    this.#serving.delete(worker)
    if (worker.connected) return
    for (const [id, given] of this.#given) if (given.worker === worker) this.#giveAgain(id)
  }

  /** A worker has the connection. */
  taken(id: number): void {
    const given = this.#given.get(id)
    if (given === undefined) return
    this.#given.delete(id)
    const untaken = this.#serving.get(given.worker)
    if (untaken !== undefined) this.#serving.set(given.worker, untaken - 1)
    // The worker has a handle of its own: this closes ours and not the connection.
    given.socket.destroy()
  }

  /** Accepts no more connections. */
  close(): void {
    this.#server.close()
    for (const socket of this.#waiting.splice(0)) socket.destroy()
  }

  #accept(socket: Socket): void {
    // A client that is gone is found out by the worker.
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

  /** The worker with the fewest connections that it has not taken, which then is the last in turn; null: there is none. */
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
