import { createStore } from '../store.ts'

/** Whether the stream of hints is open, in this tab or in another one of the browser. */
export const streamState = createStore<'open' | 'gone'>('gone')

/** When something that is shown was read last, in Unix milliseconds. */
export const readAt = createStore(Date.now())
