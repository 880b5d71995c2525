import { Icon } from '../../ui/icon.tsx'
import type { Compliance } from './own-server.ts'
import { text } from './text.ts'

type Check = Compliance['checks'][number]

const toneOf = ({ pass, required }: Check): 'good' | 'bad' | 'warn' => (pass ? 'good' : required ? 'bad' : 'warn')
const words = { good: 'Passed', bad: 'Failed', warn: 'Warning' } as const

/** The checks of a server as a list, each with its result, its time and, for those who may read it, the reason. */
export function Checklist({ compliance }: { readonly compliance: Compliance }) {
  return (
    <ul className="checklist">
      {compliance.checks.map(check => {
        const tone = toneOf(check)
        return (
          <li key={check.name} className={`check-${tone}`}>
            <Icon name={tone} />
            <div>
              <p className="check-name">
                <span className="visually-hidden">{words[tone]}: </span>
                {text.checkNames[check.name]}
                {check.required && !check.pass && <span className="quiet"> {text.required}</span>}
              </p>
              {check.detail !== '' && <p className="quiet">{check.detail}</p>}
            </div>
            <span className="quiet tabular">{text.ms(check.latency_ms)}</span>
          </li>
        )
      })}
    </ul>
  )
}

/** The result of the last test in one word. */
export function resultOf({ pass, checks }: Compliance): { readonly tone: 'good' | 'warn' | 'bad'; readonly name: string } {
  const warnings = checks.filter(check => !check.pass && !check.required).length
  if (!pass) return { tone: 'bad', name: text.failed }
  return warnings === 0 ? { tone: 'good', name: text.passed } : { tone: 'warn', name: text.warned(warnings) }
}
