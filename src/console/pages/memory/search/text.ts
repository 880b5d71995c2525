import { bytesText, count } from '../../../ui/format/numbers.ts'

/** Texts of the search. */
export const searchText = {
  label: 'Search in memory',
  placeholder: 'Search in memory',
  isRegex: 'Regular expression',
  isCase: 'Upper and lower case differ',
  within: 'Where to search',
  everywhere: 'Everywhere',
  inFolder: (name: string) => `In ${name}`,
  title: (q: string) => `Search: ${q}`,
  scanned: (objects: number, bytes: number) => `Scanned ${count(objects)} ${objects === 1 ? 'object' : 'objects'}, ${bytesText(bytes)}.`,
  found: (lines: number, objects: number) => `${count(lines)} ${lines === 1 ? 'line' : 'lines'} in ${count(objects)} ${objects === 1 ? 'object' : 'objects'}.`,
  running: 'Searching…',
  done: 'Everything was looked at.',
  goOn: 'Continue',
  stop: 'Stop',
  pausedTitle: 'Nothing yet',
  paused: 'There is more to look at.',
  noneTitle: 'No line fits',
  none: 'Everything that you may read was looked at. Try fewer words, or search everywhere.',
  line: (line: number) => `Line ${count(line)}`,
} as const
