import type { Tone } from '../../ui/data/status.tsx'
import { count } from '../../ui/format/numbers.ts'
import type { IconName } from '../../ui/icon.tsx'
import type { RunState } from './search.ts'

const calls = (many: number): string => (many === 1 ? '1 call' : `${count(many)} calls`)

/** Texts of the runs. */
export const text = {
  title: 'Runs',
  intro: 'A run is all calls of one job: a session of a coding agent, a build, a pull request. Caps hold it before it gets dear.',
  search: 'Search runs',
  searchHint: 'A part of the id',
  state: 'State',
  anyState: 'All',
  agent: 'Agent',
  agentPlaceholder: 'All agents',
  run: 'Run',
  of: 'Of',
  noOwner: 'Several',
  calls: 'Calls',
  callsText: calls,
  cost: 'Worth',
  last: 'Last call',
  emptyTitle: 'No runs yet',
  empty: 'Claude Code, Codex and opencode name their runs without any setup. Other programs send the header x-br-run-id.',
  emptyCommand: 'npx brigade runs',
  noneTitle: 'No run fits',
  none: 'No run has these filters.',
  further: 'Look further back',
  clear: 'Clear the filters',
} as const

/** The states of runs in words. */
export const stateWords: Readonly<Record<RunState, { readonly tone: Tone; readonly icon: IconName; readonly name: string; readonly means: string }>> = {
  active: { tone: 'good', icon: 'good', name: 'Active', means: 'A call was made in the last 30 minutes.' },
  held: { tone: 'bad', icon: 'pause', name: 'Held', means: 'A cap is reached. Calls are refused until somebody raises it.' },
  idle: { tone: 'quiet', icon: 'clock', name: 'Idle', means: 'No call for 30 minutes. The next call goes on with it.' },
  ended: { tone: 'quiet', icon: 'stop', name: 'Ended', means: 'Its calls are refused for good.' },
}
