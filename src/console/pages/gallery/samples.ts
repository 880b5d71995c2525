/** Invented data of the gallery. */
import { ApiError } from '../../api/api-error.ts'
import type { Series } from '../../ui/charts/series.ts'
import type { TreeNode } from '../../ui/data/tree.tsx'
import { daysBetween } from '../../ui/format/dates.ts'

export const rows = [
  { id: 1, name: 'Reviewer', inr: 431.2 },
  { id: 2, name: 'Researcher', inr: 1290.75 },
  { id: 3, name: 'Night batch', inr: 0.0042 },
]

export const manyRows = Array.from({ length: 250 }, (_, index) => ({ id: index + 1, name: `Thing ${index + 1}`, inr: (index * 37) % 1_000 }))

export const days = daysBetween('2026-10-30', '2026-11-28')

const course = (base: number, step: number): number[] => days.map((_, day) => base + ((day * step) % 17) * (base / 12))

export const series: readonly Series[] = [
  { name: 'claude-sonnet-4.5', values: course(60, 7) },
  { name: 'gpt-5', values: course(42, 5) },
  { name: 'gemini-3-pro', values: course(25, 11) },
  { name: 'sarvam-m', values: course(12, 3) },
  { name: '4 others', isRest: true, values: course(6, 2) },
]

export const nodes: readonly TreeNode[] = [
  {
    id: 'team',
    label: 'Organisation records',
    children: [
      { id: 'team/tone', label: 'tone.md' },
      { id: 'team/plans', label: 'plans', children: [{ id: 'team/plans/q4', label: 'q4.md' }] },
    ],
  },
  { id: 'me', label: 'My files', children: [{ id: 'me/notes', label: 'notes.md' }] },
]

export const failure = new ApiError('The database does not answer.', { status: 503, code: 'database_unavailable', requestId: 'req_0123456789' })
