/**
 * Loaded before the gateway with --import. On SIGUSR2 it ends the thread of the embedded database, as a crash would. It recognises the thread by its first
 * message.
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
