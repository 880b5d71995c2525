import { describe, expect, test } from 'vitest'
import { errorTable, fail, toGatewayError } from '../../src/platform/errors.ts'

describe('the error table', () => {
  test('every row of the error table has a known status, a sentence and the type of its status', () => {
    const types: Record<number, string[]> = {
      401: ['authentication_error'],
      402: ['billing_error'],
      403: ['permission_error'],
      404: ['not_found_error', 'invalid_request_error'],
      429: ['rate_limit_error'],
    }
    for (const [name, row] of Object.entries(errorTable)) {
      expect(row.message, name).toMatch(/^[A-Z].*[.)]$/)
      expect(types[row.status] ?? (row.status >= 500 ? ['api_error'] : ['invalid_request_error']), name).toContain(row.type)
    }
  })

  test('every 429 has a retry-after of at least a second, and a refusal for billing reasons has none', () => {
    for (const [name, row] of Object.entries(errorTable))
      if (row.status === 429) expect(Number(fail(name as 'budget_held').toHeaders()['retry-after']), name).toBeGreaterThanOrEqual(1)
    expect(fail('provider_unavailable_billing').toHeaders()['retry-after']).toBeUndefined()
    expect(fail('rate_limit_exceeded', { retryAfterSeconds: 0.2 }).toHeaders()['retry-after']).toBe('1')
  })

  test('extra fields are next to the error and never replace it', () => {
    expect(fail('memory_conflict', { extra: { error: 'x', current_etag: 'e' } }).toBody()).toMatchObject({
      current_etag: 'e',
      error: { code: 'memory_conflict' },
    })
  })

  test('an unexpected error becomes internal_error without its own text', () => {
    const error = toGatewayError(new Error('password=secret'))
    expect(error.code).toBe('internal_error')
    expect(JSON.stringify(error.toBody())).not.toContain('secret')
  })
})
