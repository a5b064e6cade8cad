package gate

// Invariance holds each row in company to the same row alone. figure says in
// which company.
func Invariance(figure string, ids []string, alone, company [][]float32, tolerance float64) Check {
	value, id := extreme(differences(company, alone), ids, true)
	return hold("invariance", figure, value, AtMost, tolerance, id)
}
