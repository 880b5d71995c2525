/**
 * Loaded before the gateway by --import: SIGUSR2 ends the thread of the embedded database, as a crash of it would. The thread is known by
 * its first message.
 */
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  let database = null
  process.on('worker', worker => {
    worker.once('message', message => {
      if (message?.kind === 'ready') database = worker
    })
  })
  process.on('SIGUSR2', () => void database?.terminate())
}
