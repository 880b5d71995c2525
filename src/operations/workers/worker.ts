/** A gateway that is one of several workers: how it gets its connections, and what it and its supervisor ask each other. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../platform/clock.ts'
import type { MetricSnapshot } from '../../platform/observe/metrics.ts'
import type { FromWorker, ToWorker, WorkerFigures } from './messages.ts'

/** How long the supervisor may take to gather the figures of all. */
const gatherMs = 5000

/** The channel of a worker to its supervisor. */
export class WorkerChannel {
  readonly #clock: Clock
  readonly #port: number
  readonly #waiting = new Map<number, (all: readonly WorkerFigures[]) => void>()
  #asks = 0
  #server: Server | null = null
  #ownFigures: () => Promise<readonly MetricSnapshot[]> = () => Promise.resolve([])
  #retire: () => void = () => {}

  /** `port`: the one at which the supervisor accepts connections. */
  constructor(clock: Clock, port: number) {
    this.#clock = clock
    this.#port = port
    process.on('message', (message: ToWorker, socket?: Socket) => this.#onMessage(message, socket))
  }

  /** Serves the connections that are handed over, in place of listening. Returns the port of the supervisor. */
  listen(server: Server): number {
    this.#server = server
    // What starts the server's look at requests that take too long.
    server.emit('listening')
    return this.#port
  }

  /** From here on the supervisor hands connections over. `retire` is called when another worker has taken this one's place. */
  ready(banner: string, retire: () => void): void {
    this.#retire = retire
    tell({ kind: 'ready', banner })
  }

  /** Says where the figures of this worker are read, for it and for the others. */
  offerFigures(own: () => Promise<readonly MetricSnapshot[]>): void {
    this.#ownFigures = own
  }

  /** The figures of all workers. Rejects when the supervisor does not answer. */
  figuresOfAll(): Promise<readonly WorkerFigures[]> {
    const id = ++this.#asks
    return new Promise((resolve, reject) => {
      const stopTimer = this.#clock.after(gatherMs, () => {
        this.#waiting.delete(id)
        reject(new Error('the supervisor did not answer'))
      })
      this.#waiting.set(id, all => {
        stopTimer()
        resolve(all)
      })
      tell({ kind: 'figures-of-all?', id })
    })
  }

  #onMessage(message: ToWorker, socket: Socket | undefined): void {
    switch (message.kind) {
      case 'connection':
        // Told before anything is read: what a worker has begun to read cannot go to another one.
        tell({ kind: 'taken', id: message.id })
        if (socket !== undefined) this.#serve(socket)
        break
      case 'retire':
        this.#retire()
        break
      case 'figures?':
        void this.#ownFigures().then(metrics => tell({ kind: 'figures', id: message.id, metrics }))
        break
      case 'figures-of-all':
        this.#waiting.get(message.id)?.(message.all)
        this.#waiting.delete(message.id)
    }
  }

  #serve(socket: Socket): void {
    // As sockets of a server of HTTP are; a client may end its half after the request.
    socket.allowHalfOpen = true
    if (this.#server === null) socket.destroy()
    else this.#server.emit('connection', socket)
  }
}

/** The supervisor may be gone: then this process ends too. */
function tell(message: FromWorker): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}
