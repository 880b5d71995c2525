/** Runs in the worker thread of the journal. It answers the requests that the flusher sends from the main thread. */
import type { MessagePort } from 'node:worker_threads'
import { sentError } from '../../../../platform/db/thread/db-messages.ts'
import type { Log, LogFields } from '../../../../platform/observe/log.ts'
import type { ChargedEvent } from '../../engine/admission.ts'
import type { FlushPort } from '../flush-work.ts'
import type { FlushFacts, FlushReply, FlushRequest, FromFlushThread, ToFlushThread } from './messages.ts'

/** The work of a thread, with the facts of the current request. */
export interface ThreadWork<E extends ChargedEvent> {
  /** Opens the database and returns the work. It is called again when it has failed. */
  open(facts: () => FlushFacts): Promise<FlushPort<E>>
}

/** Answers requests one after the other, and adoptions beside them, until the flusher closes the port. */
export function serveFlushes<E extends ChargedEvent>(port: MessagePort, { open }: ThreadWork<E>): void {
  let facts: FlushFacts = { nowMs: 0, baseUrl: '' }
  let work: Promise<FlushPort<E>> | null = null
  const send = (message: FromFlushThread): void => port.postMessage(message)
  const answer = async (message: ToFlushThread<E>): Promise<void> => {
    if (message.kind === 'close') {
      await work?.then(opened => opened.close()).catch(() => undefined)
      port.close()
      return
    }
    facts = message.facts
    try {
      work ??= open(() => facts).catch((error: unknown) => {
        work = null
        throw error
      })
      send({ kind: 'answered', id: message.id, answer: await answerOf(await work, message.request) })
    } catch (error) {
      send({ kind: 'failed', id: message.id, error: sentError(error) })
    }
  }
  let last: Promise<void> = Promise.resolve()
  port.on('message', (message: ToFlushThread<E>) => {
    // An adoption may take minutes, and the flushes of this process go on meanwhile.
    if (message.kind === 'ask' && message.request.kind === 'adopt') void answer(message)
    else last = last.then(() => answer(message))
  })
}

function answerOf<E extends ChargedEvent>(work: FlushPort<E>, request: FlushRequest<E>): Promise<FlushReply> {
  switch (request.kind) {
    case 'flush':
      return work.flush(request.range)
    case 'write':
      return work.write(request.processId, request.record)
    case 'lost':
      return work.lost(request.range)
    case 'adopt':
      return work.adopt(request.round)
  }
}

/** Returns a log whose lines the main thread writes. */
export function logOver(port: MessagePort): Log {
  const sender =
    (level: 'info' | 'warn' | 'error') =>
    (event: string, { error, ...fields }: LogFields = {}): void =>
      port.postMessage({ kind: 'log', level, event, fields, error: error === undefined ? null : sentError(error) } satisfies FromFlushThread)
  return { info: sender('info'), warn: sender('warn'), error: sender('error') }
}
