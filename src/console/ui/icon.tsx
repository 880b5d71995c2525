/** Path data of the icons, on a grid of 16. Each is a line of 1.5, so that they fit the weight of the text. */
const paths = {
  overview: 'M2.5 9.5 8 3l5.5 6.5M4 8v5h8V8',
  key: 'M5.2 13.5a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4zM7.1 8.9l6-6M11 5l2 2M9 7l1.5 1.5',
  search: 'M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM10.7 10.7 14 14',
  down: 'm4.5 6.5 3.5 3.5 3.5-3.5',
  up: 'm4.5 9.5 3.5-3.5 3.5 3.5',
  right: 'm6.5 4.5 3.5 3.5-3.5 3.5',
  upDown: 'm5 6 3-3 3 3M5 10l3 3 3-3',
  check: 'm3.5 8.5 3 3 6-7',
  filter: 'M2.5 4.5h11M4.5 8h7M6.5 11.5h3',
  close: 'm4 4 8 8M12 4l-8 8',
  plus: 'M8 3v10M3 8h10',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
  download: 'M8 2.5v7.5M5 7l3 3 3-3M2.5 13.5h11',
  rotate: 'M13 5.5A5.5 5.5 0 1 0 13.5 9M13.5 2.5v3.2h-3.2',
  trash: 'M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.7 9h6.6l.7-9',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'm5 3.5 7 4.5-7 4.5z',
  edit: 'm10.5 3 2.5 2.5L6 12.5l-3 .5.5-3z',
  sun: 'M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9',
  moon: 'M13 9.8A5.5 5.5 0 0 1 6.2 3a5.5 5.5 0 1 0 6.8 6.8z',
  screen: 'M2 3h12v8H2zM6 13.5h4M8 11v2.5',
  leave: 'M6.5 13.5h-4v-11h4M10 11l3-3-3-3M13 8H6',
  warn: 'M8 2.5 14 13H2zM8 6.5v3M8 11.3h.01',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.5V11M8 5.2h.01',
  good: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM5.5 8.2l1.8 1.8 3.2-3.8',
  bad: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM6 6l4 4M10 6l-4 4',
  clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.2 1.5',
  terminal: 'm3 4.5 3.5 3.5L3 11.5M8 12h5',
  people: 'M6 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.8 13.5c.4-2.2 2-3.5 4.2-3.5s3.8 1.3 4.2 3.5M10.5 3.3a2.4 2.4 0 0 1 0 4.5M12 10.4c1.2.5 2 1.6 2.3 3.1',
  link: 'M6.5 9.5 9.5 6.5M7 4.5 8.6 3A3 3 0 0 1 13 7.3L11.5 9M9 11.5 7.4 13A3 3 0 0 1 3 8.7L4.5 7',
  agent: 'M3 6h10v7H3zM8 6V3M8 3h.01M6 9h.01M10 9h.01',
  memory: 'M3 3.5h7l3 3v6H3zM6 8h4M6 10.5h4',
  usage: 'M2.5 13.5h11M4 11V7.5M7 11V4.5M10 11V6M13 11V3',
  list: 'M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01',
  wallet: 'M2.5 4.5h11v8h-11zM10.5 8.5h.01M2.5 4.5l8-2v2',
  model: 'M8 2 13.5 5v6L8 14l-5.5-3V5zM2.5 5 8 8l5.5-3M8 8v6',
  server: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
  route: 'M4 4.5a1.5 1.5 0 1 0 0-.01M12 13a1.5 1.5 0 1 0 0-.01M5.5 4.5h4a2.5 2.5 0 0 1 0 5h-3a2 2 0 0 0 0 4h4',
  webhook: 'M6 5.5a2 2 0 1 1 2.9 1.8l2 3.4M5.5 11H10M5.2 10.8 7.3 7M4 13a2 2 0 1 0 0-4M12 13a2 2 0 1 0 0-4',
  settings: 'M2.5 4.5h6M11.5 4.5h2M10 3v3M2.5 11.5h2M7.5 11.5h6M6 10v3',
  shield: 'M8 2 13 4v4c0 3-2 5-5 6-3-1-5-3-5-6V4z',
  chat: 'M2.5 3h11v8h-6L4 13.5V11H2.5zM5.5 6h5M5.5 8.2h3',
  stop: 'M4 4h8v8H4z',
  folder: 'M2 4.5h4.5L8 6h6v7H2z',
  file: 'M4 2.5h5.5L12 5v8.5H4zM9.5 2.5V5H12',
  history: 'M3 4v3h3M3.3 7A5 5 0 1 1 3 9M8 5.5V8l2 1.5',
  share: 'M8 9.5v-7M5 5l3-3 3 3M3 9v4.5h10V9',
  promote: 'M8 13V4M4.5 7.5 8 4l3.5 3.5M4 13.5h8',
  back: 'm9.5 4.5-3.5 3.5 3.5 3.5',
  split: 'M2 8h4l3.5-4H13M6 8l3.5 4H13M11 2l2 2-2 2M11 10l2 2-2 2',
  grip: 'M6 4h.01M10 4h.01M6 8h.01M10 8h.01M6 12h.01M10 12h.01',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
} as const

export type IconName = keyof typeof paths

/** An icon. It is decoration: the text beside it says what it means. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      viewBox="0 0 16 16"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      className="icon"
    >
      <path d={paths[name]} />
    </svg>
  )
}
