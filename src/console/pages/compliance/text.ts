import { count } from '../../ui/format/numbers.ts'

/** Texts of compliance. */
export const text = {
  title: 'Compliance',
  intro: 'Where your calls were served, what processed your data, and what is kept. Documents for auditors are signed. Days are those of India.',
  only: 'Owners, admins and auditors see compliance',
  window: 'Time',
  windows: { '7d': 'Last 7 days', '30d': 'Last 30 days', '90d': 'Last 90 days', '365d': 'Last 365 days' },
  json: 'JSON',
  markdown: 'Report',
  posture: {
    title: 'Where calls were served',
    note: (from: string, to: string): string => `${from} to ${to}`,
    none: 'No calls in this time',
    noneHint: 'Choose a longer time.',
    india: 'In India',
    global: 'Elsewhere or not known to be in India',
    bar: (pct: number): string => `${pct} % of calls were served in India`,
    total: 'Calls',
    declared: 'Own servers, by your word',
    unknown: 'Place not known',
    evidence: (many: number, isCapped: boolean): string =>
      `${count(many)} ${many === 1 ? 'call is' : 'calls are'} listed as evidence${isCapped ? ', the newest ones' : ''}.`,
    check: 'Check the signature',
    genuine: (keyId: string): string => `The signature is genuine, by the key ${keyId.slice(0, 12)}…`,
    about: 'This check runs in your browser, with a program of this gateway. An auditor runs the command with the file and with keys that were kept.',
    insecure: 'Your browser checks signatures only over https. Use the command.',
    command: 'npx brigade verify attestation.json',
  },
  retention: {
    title: 'Prompts and answers',
    about: 'Brigade keeps no content unless you open a window. Some models require one.',
    choice: 'What is kept',
    kinds: [
      { value: 'zero', label: 'Keep nothing', hint: 'Models that require a window are not available.' },
      { value: 'window', label: 'Keep prompts and answers for some days' },
    ],
    days: 'Days',
    daysHint: 'Encrypted in the database of the gateway. Only its operator reads them, a call at a time, with a line in your audit trail.',
    daysError: 'Type a whole number of days, from 1 to 365.',
    save: 'Save',
    saved: (days: number): string => (days === 0 ? 'Nothing is kept.' : `Content is kept for ${count(days)} days.`),
    shorter: 'Keep content for a shorter time',
    shorterAbout: (days: number): string =>
      days === 0
        ? 'This deletes everything that was kept, immediately and for good. Models that require a window are not available any more.'
        : `This deletes what is older than ${count(days)} days, immediately and for good.`,
    shorterAct: 'Delete and save',
    only: 'Owners and admins change it.',
  },
  dpia: {
    title: 'Data-protection impact assessment',
    models: 'Models',
    providers: 'Processors',
    columns: { model: 'Model', provider: 'Processor', purpose: 'Purpose', openness: 'Weights', calls: 'Calls', india: 'In India' },
    own: 'yours',
    kept: 'What is kept',
    content: 'Content of calls',
    usage: 'Usage records',
    memory: 'Memory',
    more: 'Other records',
    days: (days: number): string => `${count(days)} days`,
    where: 'Where:',
    readers: 'Who can read it:',
    noStore: 'no store is configured',
  },
} as const
