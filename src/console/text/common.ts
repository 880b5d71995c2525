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
