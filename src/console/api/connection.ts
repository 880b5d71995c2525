import { createStore } from './store.ts'

/** Whether the gateway answered last time. The shell shows a note while it does not. */
export const connection = createStore<'online' | 'offline'>('online')

/** Whether the session is good. The shell shows one dialog when it has ended, and pages keep what was typed. */
export const session = createStore<'active' | 'ended'>('active')
