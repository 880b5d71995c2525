import { useQuery } from '@tanstack/react-query'
import { apiQuery } from '../../../api/queries.ts'
import { percent } from '../../../ui/format/numbers.ts'
import { Icon } from '../../../ui/icon.tsx'
import { text } from '../text.ts'

const nearShare = 0.9

/** How much of the memory of the organisation is used. The tree works without it, so an error leaves it out. */
export function Quota() {
  const usage = useQuery(apiQuery('memoryUsageConsole'))
  if (usage.data === undefined) return null
  const { bytes_used: used, quota_bytes: quota, objects, history_bytes: history } = usage.data
  const share = quota === 0 ? 1 : used / quota
  const tone = share >= 1 ? 'bad' : share >= nearShare ? 'warn' : 'calm'
  const words = text.quotaOf(used, quota)
  return (
    <div className="memory-quota" title={text.quotaNote(objects, history)}>
      <div className={`budget-bar budget-${tone}`} role="img" aria-label={`${text.quota}: ${words}`}>
        <span className="budget-spent" style={{ inlineSize: `${Math.min(100, share * 100)}%` }} />
      </div>
      <p>
        <span className="tabular">{words}</span>
        <span className={`budget-share budget-share-${tone}`}>{percent(share)}</span>
      </p>
      {tone !== 'calm' && (
        <p className={`memory-quota-${tone}`}>
          <Icon name="warn" size={14} />
          {tone === 'bad' ? text.quotaFull : text.quotaNear}
        </p>
      )}
    </div>
  )
}
