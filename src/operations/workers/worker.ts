/** The worker's side of the communication with the supervisor. It receives connections and exchanges metrics. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../platform/clock.ts'
import type { MetricSnapshot } from '../../platform/observe/metrics.ts'
import type { FromWorker, ToWorker, WorkerFigures } from './messages.ts'

/** How long the supervisor may take to collect the metrics of all workers. */
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

  /** `port` is the port on which the supervisor accepts connections. */
  constructor(clock: Clock, port: number) {
    this.#clock = clock
    this.#port = port
    process.on('message', (message: ToWorker, socket?: Socket) => this.#onMessage(message, socket))
  }

  /** Serves the connections from the supervisor instead of listening. Returns the port of the supervisor. */
  listen(server: Server): number {
    this.#server = server
    // This event starts the server's check for requests that take too long.
    server.emit('listening')
    return this.#port
  }

  /** Reports to the supervisor that this worker can serve and receive connections. `retire` is called when another worker has replaced this one. */
  ready(banner: string, retire: () => void): void {
    this.#retire = retire
    tell({ kind: 'ready', banner })
  }

  /** Sets the function that returns the metrics of this worker. */
  offerFigures(own: () => Promise<readonly MetricSnapshot[]>): void {
    this.#ownFigures = own
  }

  /** Returns the metrics of all workers. Rejects when the supervisor does not answer. */
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
        // The worker confirms the connection before it reads anything, because a connection from which a worker has read cannot go to another worker.
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
    // Node's HTTP server sets the same option on its sockets. A client may close its side after the request.
    socket.allowHalfOpen = true
    if (this.#server === null) socket.destroy()
    else this.#server.emit('connection', socket)
  }
}

/** Sends a message. Does nothing when the supervisor has ended, because this process then ends too. */
function tell(message: FromWorker): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}
