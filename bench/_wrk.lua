-- The last line wrk prints, as JSON for _load.py.
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "duration_us": %d, "errors": %d, "p50_us": %d, "p99_us": %d}\n',
    summary.requests, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
