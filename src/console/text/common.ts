/** Texts of the shell. A page keeps its texts in a file beside it. */
export const shellText = {
  product: 'Brigade',
  skip: 'Skip to the content',
  search: 'Search or jump to…',
  offline: 'The gateway does not answer. What you typed is kept; the page goes on when it is back.',
  sandbox: 'Sandbox: replies are simulated and cost nothing. Set the key of a provider to reach real models.',
  endedTitle: 'Your session has ended',
  ended: 'Sign in again in the new tab. This page and what you typed stay as they are.',
  endedOther: 'You signed in as another person or in another organisation. This page is loaded again.',
  signIn: 'Sign in again',
  signedIn: 'You are signed in. You can close this tab.',
  days: 'Days end at midnight India time (18:30 UTC).',
} as const

/** Texts about whether the page is up to date. */
export const liveText = {
  live: { name: 'Live', means: 'Changes appear within seconds.' },
  polling: { name: 'Polling', means: 'The stream of hints is gone. The page is read again every 15 seconds while you look at it.' },
  offline: { name: 'Offline', means: 'The gateway does not answer. The page shows what was read last.' },
  updated: (seconds: number): string => (seconds < 60 ? `Updated ${seconds} s ago` : `Updated ${Math.floor(seconds / 60)} min ago`),
  waits: (seconds: number): string => `Too many requests in this minute. The console goes on by itself in ${seconds} s; what you typed is kept.`,
} as const
