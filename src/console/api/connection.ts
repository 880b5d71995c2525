import { createStore } from './store.ts'

/** Whether the gateway answered last time. The shell shows a note while it does not. */
export const connection = createStore<'online' | 'offline'>('online')

/** Whether the session is good. The shell shows one dialog when it has ended, and pages keep what was typed. */
export const session = createStore<'active' | 'ended'>('active')

/** Until when the gateway takes no more requests of this person (429), in Unix milliseconds. Null when it takes them. */
export const waits = createStore<number | null>(null)

/** True while the person leaves the session or the organisation on purpose, so that nothing follows what this changes. */
export const leaving = createStore(false)
