import { text } from './text.ts'

interface LiveSwitchProps {
  readonly isOn: boolean
  /** True while nothing is read, because the person scrolls. */
  readonly isWaiting: boolean
  readonly onChange: (isOn: boolean) => void
}

/** Switches on that new calls appear by themselves. */
export function LiveSwitch({ isOn, isWaiting, onChange }: LiveSwitchProps) {
  const state = isWaiting ? text.liveWaits : text.liveOn
  return (
    <>
      <button
        type="button"
        className={isOn ? 'button button-plain button-md live live-on' : 'button button-plain button-md live'}
        aria-pressed={isOn}
        title={isOn ? state : text.liveHelp}
        onClick={() => onChange(!isOn)}
      >
        <span className={isOn && !isWaiting ? 'live-dot live-runs' : 'live-dot'} aria-hidden="true" />
        {text.live}
      </button>
      <span className="visually-hidden" role="status">
        {isOn ? state : ''}
      </span>
    </>
  )
}
