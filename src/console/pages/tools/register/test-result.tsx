import type { ReplyOf } from '../../../api/call.ts'
import { Icon } from '../../../ui/icon.tsx'
import { text } from '../text.ts'

const namedMax = 12

/** What a test of a server found. */
export function TestResult({ result }: { readonly result: ReplyOf<'testToolServer'> }) {
  const { ok, era, tools, tools_total: total, left_out: leftOut, error, detail } = result
  const barred = tools.filter(({ approvable }) => !approvable).length
  if (!ok)
    return (
      <div className="inline-error" role="alert">
        <Icon name="bad" />
        <p>{text.form.testFailed(detail ?? error ?? '')}</p>
      </div>
    )
  return (
    <div className="test-result" role="status">
      <p className="test-line">
        <Icon name="good" />
        {text.form.testOk(total, era)}
      </p>
      {tools.length > 0 && (
        <ul className="tool-names">
          {tools.slice(0, namedMax).map(({ name }) => (
            <li key={name}>
              <code>{name}</code>
            </li>
          ))}
          {total > namedMax && <li className="quiet">{text.form.testMore(total - namedMax)}</li>}
        </ul>
      )}
      {barred > 0 && <Warning>{text.form.testBlocked(barred)}</Warning>}
      {leftOut.length > 0 && <Warning>{text.form.testLeftOut(leftOut.length)}</Warning>}
    </div>
  )
}

function Warning({ children }: { readonly children: string }) {
  return (
    <p className="test-line test-warn">
      <Icon name="warn" />
      {children}
    </p>
  )
}
