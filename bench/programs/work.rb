# Words counted, lists in hashes, records sorted, strings put together.
Record = Struct.new(:line, :first, :rest)
count = Hash.new(0)
places = Hash.new { |hash, key| hash[key] = [] }
records = []
File.foreach(ARGV[0]).with_index do |line, number|
  words = line.split
  words.each { |word| count[word] += 1; places[word[0, 3]] << "#{word} in line #{number} of the text" }
  records << Record.new(number, words[0], words.reverse.join('-'))
end
records.sort_by! { |record| [record.first, -record.line] }
text = records.map { |record| "#{record.first}:#{record.rest.size}" }.join(';')
sum = text.split(';').sum { |part| part.split(':')[1].to_i }
long = places.transform_values { |list| list.map(&:upcase).uniq.join(',').size }
puts "#{sum} #{long.values.sum} #{count.size} #{count.max_by { |word, n| [n, word] }.inspect}"
